"""What an agent wrote, made fit to be posted: nothing in it acts, nothing is hidden, and it reads as before."""
