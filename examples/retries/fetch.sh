# ORK_ATTEMPT counts from 1; without it (run by hand) the call succeeds.
if [ "${ORK_ATTEMPT:-3}" -lt 3 ]; then
    echo "503 service unavailable" >&2
    exit 1
fi
echo "{\"answered_at_attempt\": ${ORK_ATTEMPT:-3}}"
