SELECT /*+ PLAN(NATIVE) */ A.v FROM ticks A, ticks B WINDOW = 5 WHERE A.v = B.v
