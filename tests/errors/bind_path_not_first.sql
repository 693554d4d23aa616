SELECT A.speed FROM camera1 A, camera2 B PATH (NOT B, A) WITHIN (5 SECONDS) WHERE A.obj_id = B.obj_id
