ALTER STREAM camera1 SET STATISTICS (rate = :rate)
