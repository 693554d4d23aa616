SELECT /*+ BROADCAST(B), PLAN(SEMIJOIN) */ A.obj_id FROM camera1 A, camera2 B WINDOW = 5 s
