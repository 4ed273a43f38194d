#!/usr/bin/env perl
# Gets a path as argument and prints its result as the last line.
use strict;
use warnings;

my %count;
open my $text, '<', $ARGV[0] or die "$ARGV[0]: $!";
while (<$text>) { $count{$_}++ for split }
my @best = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print scalar(@best), " different words\n";
print "{\"word\": \"$best[0]\", \"times\": $count{$best[0]}}\n";
