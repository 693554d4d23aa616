ALTER STREAM camera1 SET STATISTICS (rate = 1000, width = -120)
