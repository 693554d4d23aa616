SELECT A.speed FROM camera1 A JOIN camera2 B ON A.obj_id = B.obj_id
LEFT JOIN camera3 C ON A.obj_id = C.obj_id AND similar(A.frame, B.frame) > 0.5 WINDOW = 5 SECONDS
