SET wjoin.algorithm
