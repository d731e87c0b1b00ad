import os, sys
import torch
from rankshot.ranking.sorted_rows import objective_rows, Ranking
from rankshot.ranking.objectives import on_sides, settings
from rankshot.ranking.sorted_pool import split
def compare(queries, items, classes, metric, framework, epsilon, alpha, shifts, sign=1, grid=None, share=1.0, seed=0, device="cpu"):
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
    found=objective_rows(scores.to(device,copy=True),relevant.to(device),own.to(device),rel.sum(-1).to(device),int(rel.sum(-1).max()),rankings)
    found=type(found)(found.loss.cpu(),found.weights.cpu())
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
def main(device):
    import functools
    cmp=functools.partial(compare,device=device)
    for items,queries,classes in ((12,6,2),(40,4,4),(130,4,3),(700,3,3)):
        for metric in ('ap','ndcg','auc','rr','precision@1'):
            for fw in (('dlm',1.0,10.0),('dlm',0.01,1.0),('ssvm',1.0,10.0),('ssvm',0.5,1.0)):
                t=time.time(); cmp(queries,items,classes,metric,*fw,(-0.02,0.0,0.03) if items<100 else (0.01,), share=1.0 if items<700 else 0.997)
        print(items,'ok',time.time()-t)
    for items in (12,40,130):
        for metric in ('ap','precision@3','ndcg'):
            cmp(4,items,3,metric,'dlm',1.0,1.0,(0.0,0.02),sign=-1)
            cmp(4,items,3,'precision@3','ssvm',1.0,2.0,(0.0,))
    print('programme ok')
    cmp(4,1,2,'ap','dlm',1.0,10.0,(0.0,))
    for grid in (.125,.5):
        cmp(6,30,3,'auc','ssvm',1.0,1.0,(0.0,),grid=grid); cmp(6,30,3,'auc','dlm',1.0,10.0,(0.0,),grid=grid); cmp(6,30,3,'ap','dlm',1e-6,1.0,(0.0,),grid=grid)
        cmp(6,30,3,'auc','dlm',1.0,1.0,(0.0,),sign=-1,grid=grid)
    print('ties ok')
    
    for items in (2000,4096):
        for fw in (('dlm',1.0,10.0),('dlm',0.003,1.0),('ssvm',1.0,2.0)):
            for c in (3,16,300): cmp(8,items,c,'ap',*fw,(-0.01,0.01),share=0.995)
    print('large ok')
    for grid in (1/64,1/1024):
        for items in (1000,4096): cmp(8,items,16,'ap','dlm',0.003,1.0,(0.0,),grid=grid,share=0.999); cmp(8,items,16,'auc','ssvm',1.0,1.0,(0.0,),grid=grid)
    print('large ties ok')
