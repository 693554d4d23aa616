SELECT /*+ PASSES(UNION), PLAN(NATIVE) */ A.obj_id FROM camera1 A, camera2 B PATH (A, B) WITHIN (5 s) BIDIRECTIONAL WHERE A.obj_id = B.obj_id
