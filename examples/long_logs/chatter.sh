lines=250000
yes "the quick brown fox jumps over the lazy dog, again and again and again, 80 bytes" | head -n "$lines"
echo "{\"lines\": $lines}"
