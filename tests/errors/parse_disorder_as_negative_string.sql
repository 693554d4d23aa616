ALTER STREAM s SET STATISTICS (disorder = '-2 seconds')
