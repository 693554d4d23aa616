ALTER STREAM camera1 SET STATISTICS (`disorder` = 2)
