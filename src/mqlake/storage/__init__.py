"""The seam to the disk: directories and files, real or in memory."""
