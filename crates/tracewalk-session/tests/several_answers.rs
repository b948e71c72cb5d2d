//! One session that answers several questions: each answer is what a session of its own would have given.

use tracewalk_analysis::Window;
use tracewalk_analysis::profile::{Profile, Profiling};
use tracewalk_session::{Follow, Notices, Request, Session};

fn opened() -> Session {
    Session::open(Request::new("../../testdata/examples/m3-etmv3/capture.toml")).expect("an example").0
}

fn profile(session: &mut Session) -> Profile {
    let source = session.sources()[0].clone();
    session.run(&source, &Follow::default(), Profiling::new(Window::default())).expect("an example").found
}

/// Work that needs no names leaves them out, but the next answer still has them.
#[test]
fn an_answer_without_names_leaves_the_next_one_its_names() {
    let expected = profile(&mut opened());
    let mut session = opened();
    let source = session.sources()[0].clone();
    let plain = Follow { names: None, ..Follow::default() };
    let first = session.run(&source, &plain, Profiling::new(Window::default())).expect("an example").found;
    assert_ne!(first, expected);
    assert_eq!(profile(&mut session), expected);
    assert_eq!(profile(&mut session), expected);
}

#[test]
fn names_are_looked_up_where_each_answer_asks() {
    let mut session = opened();
    let source = session.sources()[0].clone();
    let notices = Notices::default();
    let plain = session.code(&source, None, &notices).expect("an example");
    let named = session.code(&source, Some(&[]), &notices).expect("an example");
    let again = session.code(&source, Some(&[]), &notices).expect("an example");
    let main = plain.program.regions()[0].start();
    assert!(plain.symbols.function(main).is_none());
    assert!(std::sync::Arc::ptr_eq(&named, &again));
    assert!(!std::sync::Arc::ptr_eq(&plain, &named));
}
