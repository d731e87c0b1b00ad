import time, torch, itertools, sys
from benchmarks.large_batches import batch, step, milliseconds, floor
from rankshot.losses import RankingLoss
from rankshot.ranking import sorted_rows
sys.path.insert(0,'/tmp/k2')
import gpu_compare
t=time.time(); gpu_compare.main('cuda'); print('agrees', time.time()-t, flush=True)
# timing of the parts at 8192
def tune(size, regime, mk, shapes):
    e,l=batch(size,regime); f=milliseconds(lambda: floor(e),3); f=milliseconds(lambda: floor(e),5)
    for shape in shapes:
        sorted_rows._shape=lambda items,places,s=shape:(s[0],max(16,min(s[1],sorted_rows._power_of_2(places))),s[2])
        try:
            run=step(mk(),e,l); run(); milliseconds(run,2)
            print(size,regime,mk.__name__,shape,f'{milliseconds(run,5):.2f} ms floor {f:.2f}',flush=True)
        except Exception as x: print(shape,repr(x)[:300],flush=True)
default=sorted_rows._shape
for regime in ('8 a class','16 classes'):
    for mk in (RankingLoss.paper,RankingLoss):
        tune(8192,regime,mk,[(512,256,4),(256,256,4),(1024,256,8),(256,128,2),(1024,512,4),(2048,512,8)])
tune(65536,'8 a class',RankingLoss.paper,[(1024,16,8),(2048,16,16),(4096,16,16)])
for size in (128,):
    for regime in ('8 a class','16 classes'):
        for mk in (RankingLoss.paper,RankingLoss):
            tune(size,regime,mk,[(128,16,2),(128,16,4),(128,16,1),(64,16,2)])
sorted_rows._shape=default
from torch.profiler import profile, ProfilerActivity
for size,regime in ((8192,'16 classes'),(128,'8 a class')):
    e,l=batch(size,regime); run=step(RankingLoss(),e,l); run()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as p:
        for _ in range(3): run()
        torch.cuda.synchronize()
    print(p.key_averages().table(sort_by='cuda_time_total', row_limit=14, max_name_column_width=55))
# eager wall time at 128 and sign -1 in a graph
for mk,name in ((RankingLoss.paper,'paper'),(RankingLoss,'both'),(lambda: RankingLoss.paper(sign=-1),'negative')):
    e,l=batch(128,'8 a class'); run=step(mk(),e,l)
    for _ in range(5): run()
    torch.cuda.synchronize(); s=time.perf_counter()
    for _ in range(100): run()
    torch.cuda.synchronize(); print('eager 128',name,(time.perf_counter()-s)*10,'ms',flush=True)
    own=e.clone().requires_grad_(); loss=mk()
    st=torch.cuda.Stream(); st.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(st):
        for _ in range(3): own.grad=None; loss(own,l).backward()
    torch.cuda.current_stream().wait_stream(st)
    g=torch.cuda.CUDAGraph(); own.grad=None
    with torch.cuda.graph(g): loss(own,l).backward()
    print('graph 128',name,milliseconds(g.replay,100),'ms',flush=True)
