SELECT A.speed FROM camera1 A FULL JOIN camera2 B WINDOW (A, B) = 5 SECONDS WHERE A.obj_id = B.obj_id
