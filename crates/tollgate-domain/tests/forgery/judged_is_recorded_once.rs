//! Recording consumes what was judged.

async fn twice(store: &dyn tollgate_domain::Store, judged: tollgate_domain::Judged) {
    let _first = tollgate_domain::record(store, judged).await;
    let _second = tollgate_domain::record(store, judged).await;
}

fn main() {}
