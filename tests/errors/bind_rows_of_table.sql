SELECT A.speed FROM camera1 A, camera2 B, table1 V WINDOW (A, B) = 5 SECONDS AND DWINDOW (V, A) = 5 SECONDS
AND WINDOW V = 3 ROWS WHERE A.obj_id = B.obj_id AND A.obj_id = V.obj_id
