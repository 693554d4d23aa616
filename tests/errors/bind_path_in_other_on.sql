SELECT A.speed FROM camera1 A, camera3 C LEFT JOIN camera2 B ON B.obj_id = C.obj_id
PATH (A, NOT C) WITHIN (5 SECONDS) AND WINDOW (A, B) = 5 SECONDS WHERE A.obj_id = C.obj_id
