ALTER STREAM camera1 SET STATISTICS (distinct(obj_id) = 5000)
