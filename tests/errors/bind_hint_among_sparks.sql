SELECT /*+ BROADCAST(B), PLAN(CTR, 4) */ A.obj_id FROM camera1 A, camera2 B WINDOW = 5 s
