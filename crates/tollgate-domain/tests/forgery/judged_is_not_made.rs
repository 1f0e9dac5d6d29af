//! A judged call comes out of a resolved one and nowhere else.

fn forge(resolved: tollgate_domain::Resolved, evaluated: tollgate_domain::Evaluated) -> tollgate_domain::Judged {
    tollgate_domain::Judged { resolved, evaluated, message: None, notices: Vec::new() }
}

fn main() {}
