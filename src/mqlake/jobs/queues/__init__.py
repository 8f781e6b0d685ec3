"""Queue entries as tasks share them out: runs, whose queue offset is whose, files by position."""
