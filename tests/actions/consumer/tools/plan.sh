exec python3 -I tools/agent.py plan
