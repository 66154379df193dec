package sim
import ("testing";"context";"time";"os";"path/filepath"
"github.com/settle-go/settle"
"github.com/settle-go/settle/internal/clock"
"github.com/settle-go/settle/sqlite"
zs "zombiezen.com/go/sqlite")
func BenchmarkOpen(b *testing.B){
 dir:=b.TempDir(); p:=filepath.Join(dir,"t.db")
 s,_:=sqlite.Open(p,sqlite.Config{Synchronous:sqlite.Normal,KeepFree:-1}); s.Close()
 img,_:=os.ReadFile(p); b.Log(len(img))
 for b.Loop(){ q:=filepath.Join(dir,"x.db"); os.WriteFile(q,img,0o600)
  s,err:=sqlite.Open(q,sqlite.Config{Synchronous:sqlite.Normal,KeepFree:-1}); if err!=nil{b.Fatal(err)}
  s.Close() }
}
func BenchmarkOp(b *testing.B){
 dir:=b.TempDir(); p:=filepath.Join(dir,"t.db")
 now:=time.Date(2026,1,1,0,0,0,0,time.UTC)
 s,_:=sqlite.Open(p,sqlite.Config{Synchronous:sqlite.Normal,KeepFree:-1,Clock:clock.From(func()time.Time{return now})}); defer s.Close()
 ctx:=context.Background()
 c,err:=zs.OpenConn("file:"+p,zs.OpenReadWrite|zs.OpenURI); if err!=nil{b.Fatal(err)}; defer c.Close()
 b.Run("insert1",func(b *testing.B){ n:=0; for b.Loop(){ if _,err:=s.Insert(ctx,settle.New{Kind:"k",Input:[]byte("1")});err!=nil{b.Fatal(err)}; n++ }})
 var got settle.ClaimedJobs
 b.Run("claim3settle3",func(b *testing.B){ for b.Loop(){ got,err=s.Claim(ctx,settle.ClaimReq{Queue:"default",Kinds:[]string{"k"},Limit:3,Lease:time.Minute,Worker:1}); if err!=nil{b.Fatal(err)}
  var ts []settle.Transition
  for _,j:=range got.Jobs{ t:=settle.Decide(j.Snapshot,settle.Settled{Outcome:settle.Outcome{Verdict:"ok"}},j.Policy,0); ts=append(ts,t)}
  s.Apply(ctx,ts)}})
 s2,_:=sqlite.Open(filepath.Join(dir,"z.db"),sqlite.Config{Synchronous:sqlite.Normal,KeepFree:-1}); defer s2.Close()
 for range 30 { s2.Insert(ctx,settle.New{Kind:"k",Input:[]byte("1")}) }
 c2,_:=zs.OpenConn("file:"+filepath.Join(dir,"z.db"),zs.OpenReadWrite|zs.OpenURI); defer c2.Close()
 st,err:=c2.Prepare("select n,state,suspect,lane,stream,ord,due,alarm,deadline,since,attempt,excused,deferred,crashed,tries,redrives,base,worker,batch,wait,key from live"); if err!=nil{b.Fatal(err)}
 b.Run("dump30",func(b *testing.B){ for b.Loop(){ for { more,_:=st.Step(); if !more {break}; for i:=0;i<18;i++ { st.ColumnInt64(i)} }; st.Reset() }})
 b.Run("jobs30",func(b *testing.B){ for b.Loop(){ s2.Jobs(ctx,settle.Filter{}) }})
 b.Run("overdue0",func(b *testing.B){ for b.Loop(){ s2.Overdue(ctx,settle.Cursor{},10) }})
 b.Run("serialize",func(b *testing.B){ for b.Loop(){ x,err:=c2.Serialize("main"); if err!=nil||len(x)==0{b.Fatal(err)} }})
}
