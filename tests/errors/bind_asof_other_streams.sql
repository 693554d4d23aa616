SELECT A.speed, C.speed FROM camera1 A ASOF JOIN camera2 B MATCH_CONDITION (A.ts >= B.ts) ON A.obj_id = B.obj_id
ASOF JOIN camera3 C MATCH_CONDITION (A.ts >= B.ts) ON A.obj_id = C.obj_id
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 5 SECONDS
