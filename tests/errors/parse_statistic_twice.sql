ALTER STREAM camera1 SET STATISTICS (distinct.obj_id = 5000, rate = 1000, DISTINCT.`OBJ_ID` = 6000)
