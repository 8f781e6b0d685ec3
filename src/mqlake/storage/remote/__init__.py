"""Files on other machines: object stores and HDFS, read in ranges by `pyarrow.fs`."""
