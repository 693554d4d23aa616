ALTER STREAM camera1 SET STATISTICS (heaviest.obj_id = -0.2)
