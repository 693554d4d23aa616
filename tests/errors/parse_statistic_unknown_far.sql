ALTER STREAM camera1 SET STATISTICS (skew.obj_id = 0.2)
