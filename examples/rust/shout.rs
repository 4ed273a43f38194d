mod ork_task;

fn main() -> std::io::Result<()> {
    let mark = std::env::args().skip_while(|word| word != "--mark").nth(1).unwrap_or_default();
    let text = ork_task::text(&ork_task::input()?, "text").expect("an input `text`");
    println!("shouting {} characters", text.len());
    ork_task::output(&ork_task::quote(&(text.to_uppercase() + &mark)))
}
