SELECT A.speed FROM camera1 A RIGHT JOIN camera2 B ON A.obj_id = B.obj_id LEFT JOIN table1 V ON B.obj_id = V.obj_id
WINDOW (A, B) = 5 SECONDS AND DWINDOW (V, B) = 5 SECONDS AND WINDOW A = 3 ROWS
