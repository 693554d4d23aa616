SELECT A.speed, B.speed FROM camera1 A LEFT ANTI JOIN camera2 B ON A.obj_id = B.obj_id WINDOW (A, B) = 5 SECONDS
