//! Our declarations of PMIx are those of the installed header.

mod headers;

use armci_core::job::pmix::abi::{FACTS, KEYS, SIGNATURES};
use headers::Headers;

#[test]
fn our_declarations_of_pmix_are_the_headers() {
    let Some(headers) = Headers::find("pmix", &["pmix.h"], "libpmix-dev") else { return };
    let functions: Vec<_> = SIGNATURES.iter().map(|(name, signature)| (format!("&{name}"), *signature)).collect();
    let types: Vec<_> = functions.iter().map(|(function, signature)| (function.as_str(), *signature)).collect();
    headers.hold(FACTS, &types);

    // Strings are no constants to C; the preprocessor shows them.
    for (name, value) in KEYS {
        let text = headers.preprocessed(&format!("THE_KEY {name}\n"));
        assert!(text.contains(&format!("THE_KEY \"{value}\"")), "{name} is not {value:?}");
    }
}
