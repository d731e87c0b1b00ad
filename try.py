import os, sys
os.environ["TRITON_INTERPRET"]="1"
sys.path.insert(0,'/tmp/k/src')
import torch
from rankshot.ranking.sorted_rows import objective_rows, Ranking
from rankshot.ranking.objectives import on_sides, settings
from rankshot.ranking.sorted_pool import split
def compare(queries, items, classes, metric, framework, epsilon, alpha, shifts, sign=1, grid=None, share=1.0, seed=0):
    g=torch.Generator().manual_seed(items+seed)
    scores=torch.rand(queries, items, generator=g)
    if grid: scores=(scores/grid).round()*grid
    relevant=torch.randint(classes,(queries,items),generator=g)==0
    relevant[0]=False; relevant[1]=True
    own=torch.randint(-1,items,(queries,),generator=g).int()
    rel,irr=relevant.clone(),~relevant
    for i,o in enumerate(own.tolist()):
        if o>=0: rel[i,o]=irr[i,o]=False
    chosen=settings(framework,metric,epsilon,alpha,sign)
    rankings=[Ranking(chosen,s,1/len(shifts)) for s in shifts]
    found=objective_rows(scores.clone(),relevant,own,rel.sum(-1),int(rel.sum(-1).max()),rankings)
    loss,weights=torch.zeros(queries),torch.zeros(queries,items)
    ranked=rel|irr
    for s in shifts:
        raised=(scores.double()+s*rel)
        e=on_sides(split(raised,rel,irr),raised*ranked,chosen)
        e=type(e)(e.loss.float(),e.weights.float())
        loss+=e.loss/len(shifts); weights+=e.weights.where(ranked,torch.tensor(0.))/len(shifts)
    torch.testing.assert_close(found.loss,loss,atol=1e-4/epsilon,rtol=1e-4)
    agree=torch.isclose(found.weights,weights,atol=1e-4/epsilon,rtol=1e-4).double().mean().item()
    assert agree>=share,(agree,metric,framework,items)
import time
for items,queries,classes in ((12,6,2),(40,4,4),(130,4,3),(700,3,3)):
    for metric in ('ap','ndcg','auc','rr','precision@1'):
        for fw in (('dlm',1.0,10.0),('dlm',0.01,1.0),('ssvm',1.0,10.0),('ssvm',0.5,1.0)):
            t=time.time(); compare(queries,items,classes,metric,*fw,(-0.02,0.0,0.03) if items<100 else (0.01,), share=1.0 if items<700 else 0.997)
    print(items,'ok',time.time()-t)
for items in (12,40,130):
    for metric in ('ap','precision@3','ndcg'):
        compare(4,items,3,metric,'dlm',1.0,1.0,(0.0,0.02),sign=-1)
        compare(4,items,3,'precision@3','ssvm',1.0,2.0,(0.0,))
print('programme ok')
compare(4,1,2,'ap','dlm',1.0,10.0,(0.0,))
for grid in (.125,.5):
    compare(6,30,3,'auc','ssvm',1.0,1.0,(0.0,),grid=grid); compare(6,30,3,'auc','dlm',1.0,10.0,(0.0,),grid=grid); compare(6,30,3,'ap','dlm',1e-6,1.0,(0.0,),grid=grid)
    compare(6,30,3,'auc','dlm',1.0,1.0,(0.0,),sign=-1,grid=grid)
print('ties ok')
