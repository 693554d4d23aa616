ALTER STREAM camera1 SET STATISTICS (distinct.a.b = 0.0)
