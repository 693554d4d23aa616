ALTER STREAM camera1 SET STATISTICS (selectivity = 10 %)
