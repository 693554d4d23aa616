SELECT A.speed FROM camera1 A, camera2 B, camera3 C PATH (A, NOT C, B) WITHIN (5 SECONDS) BIDIRECTIONAL
WHERE A.obj_id = B.obj_id AND A.obj_id = C.obj_id
