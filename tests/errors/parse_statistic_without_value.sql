ALTER STREAM camera1 SET STATISTICS (rate, width = 120)
