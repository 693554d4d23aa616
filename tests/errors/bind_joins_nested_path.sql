SELECT A.speed FROM camera1 A LEFT JOIN (camera3 C JOIN camera2 B ON B.obj_id = C.obj_id) ON A.obj_id = B.obj_id
PATH (A, B) WITHIN (1 MINUTE) AND PATH (B, NOT C) WITHIN (1 MINUTE)
