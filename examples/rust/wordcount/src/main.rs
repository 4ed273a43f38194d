use std::collections::BTreeMap;

#[path = "../../ork_task.rs"]
mod ork_task;

fn main() -> std::io::Result<()> {
    // The only upstream task's output is the whole input: a text.
    let text = ork_task::text(&ork_task::input()?, "").expect("a text");
    let mut counts = BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_insert(0) += 1;
    }
    let members: Vec<String> = counts
        .iter()
        .map(|(word, count)| format!("{}: {count}", ork_task::quote(word)))
        .collect();
    ork_task::output(&format!("{{{}}}", members.join(", ")))
}
