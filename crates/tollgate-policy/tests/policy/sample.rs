//! The sample bundle that the README runs is one without findings.

use std::path::Path;

#[test]
fn the_sample_bundle_is_clean() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
    let report = tollgate_policy::check(&directory);
    assert!(report.is_clean(), "{}", report.render(false));
    println!("{}", report.to_json());
}
