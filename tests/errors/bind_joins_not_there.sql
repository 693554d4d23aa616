SELECT A.speed FROM camera1 A LEFT JOIN camera2 B ON A.obj_id = B.obj_id
LEFT JOIN camera3 C ON coalesce(B.obj_id, 0) = C.obj_id WINDOW (A, B) = 5 SECONDS AND WINDOW (A, C) = 5 SECONDS
