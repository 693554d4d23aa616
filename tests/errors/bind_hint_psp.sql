SELECT /*+ PLAN(PSP) */ A.obj_id FROM camera1 A, camera2 B, camera3 C WINDOW = 5 s WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id
