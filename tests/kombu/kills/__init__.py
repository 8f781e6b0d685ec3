"""Workers and a broker that are killed while Celery tasks are sent: no task may be lost."""
