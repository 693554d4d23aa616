SELECT /*+ PLAN(NATIVE) */ A.obj_id FROM camera1 A, watermarked B WINDOW = 5 s WHERE A.obj_id = B.obj_id
