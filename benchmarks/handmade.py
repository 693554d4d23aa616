from wjoin.planner.physical import *
from wjoin.executor.spark.compile import compile_plan
def joined(spark, inputs, window):
    w = window * 1_000_000
    def scan(a):
        return StreamScan(a,"ts",1_000_000,(),(ScanColumn(f"`{a}`.`id`","bigint","id"),ScanColumn(f"`{a}`.`ts`","timestamp","ts"),ScanColumn(f"`{a}`.`payload`","string","payload")),(KeyCode((f"`{a}`.`id`",),("bigint",),True,()),),True)
    plan = PhysicalPlan(tuple(scan(a) for a in "abc"),TimeKind.TIMESTAMP,((0,w,w),(w,0,w),(w,w,0)),(),(Stage(tuple(StageInput((i,),None,(i,0)) for i in range(3)),Bounds.EXACT,Route.HASH,Kernel.HW,Shipping.BLOCKS,()),),frozenset(),w)
    return compile_plan(plan, inputs).selectExpr("a.id","a.ts a_ts","b.ts b_ts","c.ts c_ts","a.payload a_payload","b.payload b_payload","c.payload c_payload")
