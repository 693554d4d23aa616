SELECT A.speed FROM camera1 A LEFT JOIN table1 V ON A.obj_id = V.obj_id JOIN camera2 B ON A.obj_id = B.obj_id
WINDOW (A, B) = 5 SECONDS AND WINDOW (V, B) = 5 SECONDS
