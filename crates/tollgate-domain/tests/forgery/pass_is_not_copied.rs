//! A pass permits one answer, so it cannot be had twice.

fn twice(pass: tollgate_domain::Pass) -> [tollgate_domain::Pass; 2] {
    [pass.clone(), pass]
}

fn main() {}
