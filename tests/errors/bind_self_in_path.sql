SELECT A.obj_id FROM camera1 A, camera2 B PATH (A, A, B) WITHIN (5 s, 5 s)
