SELECT A.speed FROM camera1 A LEFT JOIN camera2 B ON A.obj_id = B.obj_id PATH (A, NOT B) WITHIN (5 SECONDS)
