SELECT A.speed FROM camera1 A JOIN camera2 B ON A.obj_id = B.obj_id LEFT JOIN table1 V ON A.obj_id = V.obj_id
WINDOW (A, V) = 5 SECONDS AND WINDOW (B, V) = 5 SECONDS
